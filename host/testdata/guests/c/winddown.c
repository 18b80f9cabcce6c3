/* A guest that asks whether it should stop. It logs that it has begun, so that it
 * is canceled while it works. */
#include "guest.h"

static uint8_t text[256];

static void begin(void) { fh_log(1, "begun", 5, 0, 0); }

/* work goes on until it should stop, and says how long it had left. */
EXPORT("work") int32_t work(void) {
  volatile uint32_t done = 0;
  int32_t left;
  begin();
  while ((left = fh_should_stop()) == 0) {
    done++;
  }
  uint8_t *at = put_text(text, "{\"code\":\"stopped\",\"message\":\"half done\",\"details\":{\"left\":");
  at = put_text(put_number(at, (uint64_t)left), ",\"canceled\":true}}");
  fh_fail(text, (int32_t)(at - text));
  return 1;
}

/* insist asks again and again and does not care. */
EXPORT("insist") int32_t insist(void) {
  begin();
  for (;;) {
    fh_should_stop();
  }
}

/* finish succeeds once it is asked to stop. */
EXPORT("finish") int32_t finish(void) {
  begin();
  while (fh_should_stop() == 0) {
  }
  give((const uint8_t *)"\"done\"", 6);
  return 0;
}

/* once gives what it is told when nobody has canceled it. */
EXPORT("once") int32_t once(void) {
  return give(text, (int32_t)(put_number(text, (uint64_t)fh_should_stop()) - text));
}
