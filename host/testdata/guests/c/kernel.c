/* A kernel of the kinds of work that CoreMark made usual: a linked list that is
 * searched and sorted, products of matrices, a state machine that reads numbers,
 * and a CRC over all results. Written anew; its figures compare with themselves
 * only. The input is the number of rounds, the output {"crc":n}. */
#include "guest.h"

EXPORT("nothing") int32_t nothing(void) { return 0; }

static uint16_t crc16(uint16_t crc, uint32_t v) {
  for (int bit = 0; bit < 32; bit++, v >>= 1) {
    uint16_t low = (crc ^ v) & 1;
    crc = crc >> 1 ^ (low ? 0xa001 : 0);
  }
  return crc;
}

static uint32_t seed;

static uint32_t pseudorandom(void) { /* xorshift32 of Marsaglia */
  seed ^= seed << 13;
  seed ^= seed >> 17;
  return seed ^= seed << 5;
}

/* The list. */

#define NODES 256

struct node {
  struct node *next;
  int32_t value, index;
};

static struct node nodes[NODES];

static struct node *list_make(void) {
  for (int i = 0; i < NODES; i++) {
    nodes[i] = (struct node){i + 1 < NODES ? &nodes[i + 1] : 0, (int32_t)(pseudorandom() & 0xffff), i};
  }
  return nodes;
}

static struct node *list_find(struct node *list, int32_t value) {
  while (list && list->value != value) {
    list = list->next;
  }
  return list;
}

typedef int32_t (*order)(const struct node *a, const struct node *b);

static int32_t by_value(const struct node *a, const struct node *b) { return a->value - b->value; }
static int32_t by_index(const struct node *a, const struct node *b) { return a->index - b->index; }

static struct node *list_merge(struct node *a, struct node *b, order compare) {
  struct node head, *last = &head;
  while (a && b) {
    struct node **less = compare(a, b) <= 0 ? &a : &b;
    last->next = *less;
    last = *less;
    *less = (*less)->next;
  }
  last->next = a ? a : b;
  return head.next;
}

static struct node *list_sort(struct node *list, order compare) {
  if (!list || !list->next) {
    return list;
  }
  struct node *middle = list;
  for (struct node *end = list->next; end && end->next; end = end->next->next) {
    middle = middle->next;
  }
  struct node *second = middle->next;
  middle->next = 0;
  return list_merge(list_sort(list, compare), list_sort(second, compare), compare);
}

static uint16_t list_round(uint16_t crc) {
  static order volatile orders[2] = {by_value, by_index}; /* calls through the table */
  struct node *list = list_make();
  for (int i = 0; i < 16; i++) {
    struct node *found = list_find(list, (int32_t)(pseudorandom() & 0xffff));
    crc = crc16(crc, found ? (uint32_t)found->index : 0xffffffff);
  }
  for (int i = 0; i < 2; i++) {
    list = list_sort(list, orders[i]);
    for (struct node *n = list; n; n = n->next) {
      crc = crc16(crc, (uint32_t)n->value);
    }
  }
  return crc;
}

/* Matrices. */

#define SIDE 24

static int32_t left[SIDE][SIDE], right[SIDE][SIDE], product[SIDE][SIDE];

static uint16_t matrix_round(uint16_t crc) {
  for (int i = 0; i < SIDE * SIDE; i++) {
    left[i / SIDE][i % SIDE] = (int16_t)pseudorandom();
    right[i / SIDE][i % SIDE] = (int16_t)pseudorandom();
  }
  for (int row = 0; row < SIDE; row++) {
    for (int column = 0; column < SIDE; column++) {
      uint32_t sum = 0;
      for (int k = 0; k < SIDE; k++) {
        sum += (uint32_t)left[row][k] * (uint32_t)right[k][column];
      }
      product[row][column] = (int32_t)sum;
    }
  }
  for (int i = 0; i < SIDE; i++) {
    crc = crc16(crc, (uint32_t)product[i][i]);
  }
  return crc;
}

/* The state machine: which of the words of a text are whole numbers, decimals,
 * numbers with an exponent, or nothing of that. */

enum state { START, SIGN, WHOLE, FRACTION, EXPONENT, POWER, INVALID, STATES };

static enum state step(enum state s, uint8_t c) {
  int digit = c >= '0' && c <= '9', sign = c == '+' || c == '-';
  switch (s) {
  case START:
    return digit ? WHOLE : sign ? SIGN : c == '.' ? FRACTION : INVALID;
  case SIGN:
    return digit ? WHOLE : c == '.' ? FRACTION : INVALID;
  case WHOLE:
    return digit ? WHOLE : c == '.' ? FRACTION : c == 'e' ? EXPONENT : INVALID;
  case FRACTION:
    return digit ? FRACTION : c == 'e' ? EXPONENT : INVALID;
  case EXPONENT:
    return digit || sign ? POWER : INVALID;
  case POWER:
    return digit ? POWER : INVALID;
  default:
    return INVALID;
  }
}

static uint8_t text[2048];

static uint16_t state_round(uint16_t crc) {
  uint32_t count[STATES] = {0};
  for (uint32_t i = 0; i < sizeof text; i++) {
    text[i] = (uint8_t) "0123456789012345,,+-.e,x"[pseudorandom() % 24];
  }
  enum state s = START;
  for (uint32_t i = 0; i < sizeof text; i++) {
    if (text[i] == ',') {
      count[s]++;
      s = START;
    } else {
      s = step(s, text[i]);
    }
  }
  for (int i = 0; i < STATES; i++) {
    crc = crc16(crc, count[i]);
  }
  return crc;
}

EXPORT("kernel") int32_t kernel(void) {
  uint8_t buffer[64];
  int32_t len = take(buffer, sizeof buffer);
  uint64_t rounds = len < 0 ? 0 : number(buffer, len);
  uint16_t crc = 0;
  seed = 2463534242;
  for (; rounds; rounds--) {
    crc = state_round(matrix_round(list_round(crc)));
  }
  uint8_t *end = put_text(put_number(put_text(buffer, "{\"crc\":"), crc), "}");
  return give(buffer, (int32_t)(end - buffer));
}
