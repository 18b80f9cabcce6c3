package run_test

import (
	"testing"

	"github.com/flowhost/flowhost/run"
)

func TestReservedSubject(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{
		"fh", "fh.>", "fh.*", "fh.v1.run.*.*.finished", "fh.v1.api.run.*", "fh.v1.trigger.x",
		"$JS.>", "$JS.API.>", "$JS.ACK.a.b", "$SYS.>", "$SRV.PING", "$KV.a.b", "$O.a.C.x", "$", "$anything.else",
		"_INBOX.>", "_INBOX.abc.*", "_INBOX_client.x", "_INBOXES", "_R_.x", "_R_", "_", "_x.y",
		"*", "*.x", "*.*", ">", "*.v1.run.>",
	} {
		if run.ReservedSubject(subject) == "" {
			t.Errorf("%q is not reserved", subject)
		}
	}
	for _, subject := range []string{"orders", "orders.>", "orders.*", "a.fh.b", "a.$JS.b", "a._INBOX.b", "fhx.a", "FH.a", "f.h", "x_.y", "a$.b", "shop.*.sold.>"} {
		if why := run.ReservedSubject(subject); why != "" {
			t.Errorf("%q is reserved: %s", subject, why)
		}
	}
}

func TestReservedStream(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"FH_JOURNAL", "FH_TRIGGERS", "FH_anything", "OBJ_FH_BLOBS", "OBJ_mine", "KV_FH_LEASE", "KV_mine", "$SYS", "$MQTT_msgs", "_x"} {
		if run.ReservedStream(name) == "" {
			t.Errorf("%q is not reserved", name)
		}
	}
	for _, name := range []string{"ORDERS", "FHX", "fh_orders", "A_FH_B", "KVX", "OBJECTS"} {
		if why := run.ReservedStream(name); why != "" {
			t.Errorf("%q is reserved: %s", name, why)
		}
	}
}
