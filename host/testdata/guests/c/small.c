/* The smallest useful guest: it gives back what it got, or does nothing. */
#include "guest.h"

static uint8_t buffer[64 << 10];

EXPORT("nothing") int32_t nothing(void) { return 0; }

EXPORT("echo") int32_t echo(void) {
  int32_t len = take(buffer, sizeof buffer);
  return len < 0 ? 1 : give(buffer, len);
}

/* spin never ends. */
EXPORT("spin") int32_t spin(void) {
  for (;;) {
    __asm__ volatile("");
  }
}
