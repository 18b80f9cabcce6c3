// flowhost as a program in another language meets it: nothing but NATS, JSON and
// the credentials in the data folder.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { ask, connectTo, example, patience, result, serve, within } from "./flowhost.js";

const order = (name) => readFile(example(`orders/${name}.json`), "utf8");
const task = (record, name) => record.tasks.find((t) => t.task === name);

/** The kinds of events with the tasks that they are about: "attempt_started price". */
const kinds = (events) => events.map((e) => [e.kind, e.task].filter(Boolean).join(" "));

/** Gives the events that a query asks for, over as many requests as it takes. */
async function* follow(nc, query) {
  for (let after; ; ) {
    const { body } = await ask(nc, "fh.v1.api.follow", JSON.stringify({ ...query, after }), { "Fh-Wait": "10s" });
    assert.ok(body.events, JSON.stringify(body));
    assert.ok(!body.reset, "the host holds everything since its start");
    after = body.next;
    yield* body.events;
    if (body.end) return;
  }
}

/** Reads events from an iterator up to the end of a run. */
async function untilFinished(messages, run) {
  const events = [];
  for await (const message of messages) {
    const event = message.json();
    if (event.run !== run) continue;
    events.push(event);
    if (event.kind === "finished") break;
  }
  return events;
}

describe("flowhost run examples", { timeout: 3 * patience }, () => {
  let host, nc;

  before(async () => {
    host = await serve();
    nc = await connectTo(host);
  });

  after(async () => {
    await nc?.close();
    if (host) assert.equal(await host.stop(), 0, "the exit code after SIGTERM");
  });

  test("a small order is approved", async () => {
    const record = await result(nc, "orders.created", await order("small"));
    const { ticket: number, ...ticket } = record.output.ticket;
    assert.equal(record.state, "succeeded");
    assert.match(number, /^T-/);
    assert.deepEqual(ticket, { customer: "ada", order: "o-1001", queue: "", status: "approved", total: 154.9 });
    assert.equal(task(record, "auto_approve").state, "succeeded");
    assert.equal(task(record, "manual_review").state, "skipped");
  });

  test("a large order waits for people", async () => {
    const record = await result(nc, "orders.created", await order("large"));
    const { ticket: _, ...ticket } = record.output.ticket;
    assert.deepEqual(ticket, { customer: "grace", order: "o-1002", queue: "sales", status: "pending", total: 12600 });
  });

  test("an invalid order fails and says why", async () => {
    const record = await result(nc, "orders.created", await order("invalid"));
    assert.equal(record.state, "failed");
    assert.equal(record.error.code, "invalid_order");
    assert.equal(record.error.task, "price");
    assert.match(record.error.at, /^orders\.hcl:\d+$/);
  });

  test("an order without a total is filtered out", async () => {
    const { body } = await ask(nc, "orders.created", '{"customer":"alan","items":[],"total":0}', { "Fh-Wait": "30s" });
    assert.deepEqual(body, { run: null, accepted: false });
  });

  test("the time zones are reported", async () => {
    const record = await result(nc, "tzdb.report", "{}");
    const { zones, countries, commented } = record.output.totals;
    assert.deepEqual({ zones, countries, commented }, { zones: 312, countries: 247, commented: 201 });
    assert.equal(record.output.regions.length, 9);
    assert.equal(record.output.regions[0].region, "America");
  });

  const malformed = [
    ["no JSON", '{"id":', "payload", /not JSON/],
    ["a total that is no number", '{"customer":"alan","total":"much"}', "expression", /^orders\.hcl:\d+/],
  ];
  for (const [what, body, code, message] of malformed) {
    test(`an order is refused: ${what}`, async () => {
      const answer = await ask(nc, "orders.created", body, { "Fh-Wait": "30s" });
      assert.equal(answer.headers.get("Nats-Service-Error-Code"), code);
      assert.match(answer.headers.get("Nats-Service-Error"), message);
      assert.equal(answer.body.error.code, code);
      assert.match(answer.body.error.message, message);
    });
  }

  test("a flow that is not there is refused", async () => {
    const answer = await ask(nc, "fh.v1.api.run.nothing", "{}");
    assert.equal(answer.headers.get("Nats-Service-Error-Code"), "unknown_flow");
  });

  test("a run is followed by a subscription", async () => {
    const messages = nc.subscribe("fh.v1.run.hello/hello.>");
    await nc.flush();
    const { body } = await ask(nc, "fh.v1.api.run.hello/hello", "");
    const events = await within(untilFinished(messages, body.run), "the end of the run");
    assert.deepEqual(kinds(events), ["submitted", "started", "attempt_started greet", "attempt_finished greet", "finished"]);
    assert.deepEqual(events.at(-1).record.output, { greet: { text: "Hello, world!" } });
    const again = [];
    for await (const event of follow(nc, { run: body.run })) again.push(event);
    assert.deepEqual(again, events);
  });

  test("a durable message makes one run, which a follower sees", async () => {
    const js = jetstream(nc);
    const options = { msgID: "js-1", timeout: patience };
    const first = await js.publish("fh.v1.trigger.diamond/diamond", '{"limit":1000}', options);
    const again = await js.publish("fh.v1.trigger.diamond/diamond", '{"limit":1000}', options);
    assert.deepEqual([first.stream, first.duplicate, again.duplicate], ["FH_TRIGGERS", false, true]);
    // Messages make runs in order: no second run of the first can come after this.
    await js.publish("fh.v1.trigger.diamond/diamond", '{"limit":100}', { ...options, msgID: "js-2" });

    const open = new Set();
    const primes = {}; // by limit
    const read = async () => {
      for await (const event of follow(nc, { flow: "diamond/diamond" })) {
        open.add(event.run);
        if (event.kind !== "finished") continue;
        open.delete(event.run);
        const { params, output, trigger } = event.record;
        if (trigger.kind === "message") (primes[params.limit] ??= []).push(output.primes);
        if (primes[100] && open.size === 0) break;
      }
    };
    await within(read(), "the end of both runs");
    assert.deepEqual(primes, { 100: [25], 1000: [168] }); // OEIS A006880
  });

  test("nobody gets in without a password", async () => {
    await assert.rejects(connect({ servers: host.credentials.url, reconnect: false }), /authorization/i);
  });
});
