/* What a guest without a C library needs: the imports of flowhost:task/v1, or with
 * EXTISM defined those of extism:host/env, behind the same few functions. */
#ifndef GUEST_H
#define GUEST_H

#include <stddef.h>
#include <stdint.h>

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

/* take copies the call's input to buf and gives its length, below 0 when it is
 * longer than cap. give sets the output. */
static int32_t take(uint8_t *buf, int32_t cap);
static int32_t give(const uint8_t *buf, int32_t len);

#ifndef EXTISM

IMPORT("flowhost:task/v1", "size") int32_t fh_size(int32_t field);
IMPORT("flowhost:task/v1", "read") int32_t fh_read(int32_t field, void *buf, int32_t cap);
IMPORT("flowhost:task/v1", "output") int32_t fh_output(const void *buf, int32_t len);
IMPORT("flowhost:task/v1", "fail") int32_t fh_fail(const void *buf, int32_t len);
IMPORT("flowhost:task/v1", "log")
int32_t fh_log(int32_t level, const void *msg, int32_t len, const void *fields, int32_t fields_len);
/* 0 as long as the call may go on, else the milliseconds until it is ended. A
 * guest that imports it has these when it is canceled. */
IMPORT("flowhost:task/v1", "should_stop") int32_t fh_should_stop(void);
IMPORT("wasi_snapshot_preview1", "proc_exit") _Noreturn void proc_exit(int32_t status);

static inline int32_t take(uint8_t *buf, int32_t cap) { return fh_read(0, buf, cap); }
static inline int32_t give(const uint8_t *buf, int32_t len) { return fh_output(buf, len); }

#else /* as the plugin development kits do it: 8 bytes for each call, then single ones */

IMPORT("extism:host/env", "input_length") int64_t ex_input_length(void);
IMPORT("extism:host/env", "input_load_u8") int32_t ex_input_load_u8(int64_t at);
IMPORT("extism:host/env", "input_load_u64") int64_t ex_input_load_u64(int64_t at);
IMPORT("extism:host/env", "alloc") int64_t ex_alloc(int64_t len);
IMPORT("extism:host/env", "store_u8") void ex_store_u8(int64_t at, int32_t v);
IMPORT("extism:host/env", "store_u64") void ex_store_u64(int64_t at, int64_t v);
IMPORT("extism:host/env", "output_set") void ex_output_set(int64_t at, int64_t len);

static inline int32_t take(uint8_t *buf, int32_t cap) {
  int32_t len = (int32_t)ex_input_length(), i = 0;
  if (len > cap) {
    return -1;
  }
  for (; i + 8 <= len; i += 8) {
    *(int64_t *)(buf + i) = ex_input_load_u64(i);
  }
  for (; i < len; i++) {
    buf[i] = (uint8_t)ex_input_load_u8(i);
  }
  return len;
}

static inline int32_t give(const uint8_t *buf, int32_t len) {
  int64_t at = ex_alloc(len);
  int32_t i = 0;
  for (; i + 8 <= len; i += 8) {
    ex_store_u64(at + i, *(const int64_t *)(buf + i));
  }
  for (; i < len; i++) {
    ex_store_u8(at + i, buf[i]);
  }
  ex_output_set(at, len);
  return 0;
}

#endif

/* number gives the first run of digits in text, 0 without one. */
static inline uint64_t number(const uint8_t *text, int32_t len) {
  uint64_t n = 0;
  int32_t i = 0;
  while (i < len && (text[i] < '0' || text[i] > '9')) {
    i++;
  }
  for (; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
    n = 10 * n + (text[i] - '0');
  }
  return n;
}

/* put functions append to where at points and give the new end. */
static inline uint8_t *put_text(uint8_t *at, const char *text) {
  while (*text) {
    *at++ = (uint8_t)*text++;
  }
  return at;
}

static inline uint8_t *put_number(uint8_t *at, uint64_t n) {
  uint8_t digits[20], *first = digits + sizeof digits;
  do {
    *--first = '0' + n % 10;
    n /= 10;
  } while (n);
  while (first < digits + sizeof digits) {
    *at++ = *first++;
  }
  return at;
}

static inline uint8_t *put_hex(uint8_t *at, uint64_t n) {
  for (int shift = 60; shift >= 0; shift -= 4) {
    *at++ = (uint8_t) "0123456789abcdef"[n >> shift & 15];
  }
  return at;
}

#endif
