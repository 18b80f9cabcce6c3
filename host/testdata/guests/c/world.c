/* A guest that tells all that it can see of itself, and then leaves as different
 * a world as it can. See ../README.md. */
#include "guest.h"

#define PAGE 65536
#define MAX_SUMS 64 /* pages whose sums are told apart */

/* State of each kind. wasm globals other than the stack pointer are not to be had
 * from C itself. */
static volatile uint32_t in_data = 41;
static volatile uint32_t in_bss;
static volatile uint8_t table[4096] = {[0 ... 4095] = 0xa5};
static volatile uint8_t pattern[640 * 4096]; /* zero pages */

__asm__(".globaltype global_i32, i32\n\t.globl global_i32\nglobal_i32:\n");
__asm__(".globaltype global_i64, i64\n\t.globl global_i64\nglobal_i64:\n");
__asm__(".globaltype global_f64, f64\n\t.globl global_f64\nglobal_f64:\n");

#define GLOBAL(name, type)                                                  \
  static type get_##name(void) {                                            \
    type v;                                                                 \
    __asm__ volatile("global.get " #name "\n\tlocal.set %0" : "=r"(v));     \
    return v;                                                               \
  }                                                                         \
  static inline void set_##name(type v) {                                   \
    __asm__ volatile("local.get %0\n\tglobal.set " #name : : "r"(v));       \
  }
GLOBAL(global_i32, uint32_t)
GLOBAL(global_i64, uint64_t)
GLOBAL(global_f64, double)
GLOBAL(__stack_pointer, uint32_t)

/* The heap: nodes from a bump allocator, in a list. */

struct node {
  struct node *next;
  uint64_t value;
};

extern uint8_t __heap_base;
static struct node *list;
static uint32_t heap_used;

static void push(uint64_t value) {
  struct node *n = (struct node *)(&__heap_base + heap_used);
  if ((uintptr_t)(n + 1) > __builtin_wasm_memory_size(0) * PAGE) {
    return;
  }
  heap_used += sizeof *n;
  *n = (struct node){list, value};
  list = n;
}

static uint64_t list_sum(void) {
  uint64_t sum = 0;
  for (struct node *n = list; n; n = n->next) {
    sum = 31 * sum + n->value;
  }
  return sum;
}

/* What the guest sees. */

static uint64_t sums[MAX_SUMS];

/* Each step is a bijection of the sum: no single change goes unseen. */
static uint64_t hash(uint64_t sum, uintptr_t from, uintptr_t to) {
  for (const uint64_t *p = (const uint64_t *)from; p < (const uint64_t *)to; p++) {
    sum = (sum ^ *p) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return sum;
}

/* The sums run on from page to page: the first that differs is where. */
static uint32_t look(void) {
  uint32_t pages = (uint32_t)__builtin_wasm_memory_size(0);
  uint64_t sum = hash(1, (uintptr_t)sums, (uintptr_t)(sums + MAX_SUMS));
  for (uint32_t i = 0; i < pages; i++) {
    sum = hash(sum, i * PAGE, i * PAGE + PAGE);
    sums[i < MAX_SUMS ? i : MAX_SUMS - 1] = sum;
  }
  return pages;
}

static uint8_t report[64 + 19 * MAX_SUMS + 256];

static int32_t tell(uint32_t pages) {
  union {
    double value;
    uint64_t bits;
  } f64 = {get_global_f64()};
  uint8_t *at = put_text(report, "{\"memory\":[");
  for (uint32_t i = 0; i < pages && i < MAX_SUMS; i++) {
    at = put_text(put_hex(put_text(at, i ? ",\"" : "\""), sums[i]), "\"");
  }
  at = put_number(put_text(at, "],\"pages\":"), pages);
  at = put_number(put_text(at, ",\"data\":"), in_data);
  at = put_number(put_text(at, ",\"bss\":"), in_bss);
  at = put_number(put_text(at, ",\"i32\":"), get_global_i32());
  at = put_number(put_text(at, ",\"i64\":"), get_global_i64());
  at = put_number(put_text(at, ",\"f64\":"), f64.bits);
  at = put_number(put_text(at, ",\"heap\":"), list_sum());
  at = put_number(put_text(at, ",\"stack\":"), get___stack_pointer());
  return (int32_t)(put_text(at, "}") - report);
}

/* What the guest does. */

static void change(uint64_t amount) {
  in_data += amount;
  in_bss += amount;
  set_global_i32(get_global_i32() + (uint32_t)amount);
  set_global_i64(get_global_i64() + (amount << 33));
  set_global_f64(get_global_f64() + (double)amount / 3);
  for (uint64_t i = 0; i <= amount % 64; i++) {
    push(amount + i);
  }
  /* every second page, so that what has changed is in hundreds of places */
  for (uint32_t i = amount % 8192; i < sizeof pattern; i += 8192) {
    pattern[i] += (uint8_t)amount | 1;
  }
  for (uint32_t i = amount % 64; i < sizeof table; i += 64) {
    table[i] = 0;
  }
}

/* grow writes to all of its new memory and gives 3 if that was not zero before. */
static int32_t grow(uint64_t amount) {
  size_t before = __builtin_wasm_memory_grow(0, 1 + amount % 16);
  size_t end = __builtin_wasm_memory_size(0) * PAGE;
  uint64_t found = 0;
  if (before == (size_t)-1) {
    return 4;
  }
  for (size_t at = before * PAGE; at < end; at += 8) {
    found |= *(volatile uint64_t *)at;
    *(volatile uint64_t *)at = amount | 1;
  }
  return found ? 3 : 0;
}

static uint32_t __attribute__((noinline)) deep(uint32_t depth) {
  volatile uint32_t frame[2] = {depth, depth};
  return depth ? deep(depth - 1) + frame[1] : frame[0];
}

/* wreck writes over all memory, this program's variables and stack too. */
static inline void wreck(uint64_t amount) {
  __builtin_memset((void *)0, (int)amount | 1, __builtin_wasm_memory_size(0) * PAGE);
}

static const char failure[] = "{\"code\":\"asked\",\"message\":\"to fail\"}";

EXPORT("nothing") int32_t nothing(void) { return 0; }

/* mutate's input is a word and a number: how to end, and by how much to change
 * everything before. It logs what it saw when it began, and gives it as output. */
EXPORT("mutate") int32_t mutate(void) {
  uint32_t pages = look();
  int32_t len = tell(pages);
  fh_log(1, "world", 5, report, len);
  give(report, len);

  uint8_t input[64];
  int32_t input_len = take(input, sizeof input);
  if (input_len < 3) {
    return 1;
  }
  uint64_t amount = number(input, input_len);
  change(amount);
  switch (input[1] << 8 | input[2]) {
  case 't' << 8 | 'r': /* trap */
    set___stack_pointer(get___stack_pointer() - 4096);
    __builtin_trap();
  case 'e' << 8 | 'x': /* exit */
    proc_exit((int32_t)(amount % 3));
  case 'l' << 8 | 'o': /* loop */
    for (;;) {
      in_bss++;
    }
  case 'g' << 8 | 'r': /* grow */
    return grow(amount);
  case 'f' << 8 | 'a': /* fail */
    fh_fail(failure, sizeof failure - 1);
    return 1;
  case 'd' << 8 | 'e': /* deep */
    in_bss = deep(5000);
    return 0;
  case 'w' << 8 | 'r': /* wreck */
    wreck(amount);
    if (amount & 1) {
      __builtin_trap();
    }
    return 0;
  case 'r' << 8 | 'e': /* return */
    return 0;
  }
  return 2;
}
