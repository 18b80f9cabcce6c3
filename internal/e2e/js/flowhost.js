// Starts the program under test and connects to it as its users do.

import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, headers } from "@nats-io/transport-node";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");

/** How long a test waits for what must happen, in milliseconds. */
export const patience = 30_000;

/** The path of an example's file. */
export const example = (name) => join(root, "examples", name);

/**
 * Serves a copy of the examples, with the program that FLOWHOST_BIN names, from a
 * data folder of its own. stop() asks for a soft stop and gives the exit code.
 */
export async function serve() {
  const program = process.env.FLOWHOST_BIN;
  if (!program) {
    throw new Error("FLOWHOST_BIN must be the path of the flowhost program");
  }
  const dir = await mkdtemp(join(tmpdir(), "flowhost-js-"));
  const data = join(dir, "data");
  const visible = (path) => !basename(path).startsWith("."); // the state of a host that was started there is not
  await cp(join(root, "examples"), join(dir, "examples"), { recursive: true, filter: visible });

  const args = ["run", join(dir, "examples"), "--data", data, "--nats-listen", "127.0.0.1:0"];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  try {
    await says(child, ended, " serves ");
  } catch (err) {
    child.kill("SIGKILL");
    await rm(dir, { recursive: true, force: true });
    throw err;
  }
  return {
    credentials: JSON.parse(await readFile(join(data, "nats-context.json"), "utf8")),
    async stop() {
      child.kill("SIGTERM");
      const code = await within(ended, "the end of flowhost");
      await rm(dir, { recursive: true });
      return code;
    },
  };
}

/** Waits until the program has written a text. */
async function says(child, ended, text) {
  let output = "";
  const said = new Promise((resolve) => {
    const hear = (chunk) => {
      output += chunk;
      if (output.includes(text)) resolve();
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
  });
  const died = ended.then((code) => {
    throw new Error(`flowhost ended with ${code}:\n${output}`);
  });
  await within(Promise.race([said, died]), `"${text}" in the output`);
  died.catch(() => {}); // from now on stop() looks at the end
}

/** Connects as the client user. */
export function connectTo({ credentials: { url, user, password, inbox_prefix } }) {
  return connect({ servers: url, user, pass: password, inboxPrefix: inbox_prefix, reconnect: false });
}

/** Asks for a run and gives the answer as it is: body (JSON) and headers. */
export async function ask(nc, subject, body, extra = {}) {
  const h = headers();
  for (const [name, value] of Object.entries(extra)) h.set(name, value);
  const answer = await nc.request(subject, body, { timeout: patience, headers: h });
  return { body: answer.json(), headers: answer.headers };
}

/** Asks for a run and gives its record. */
export async function result(nc, subject, body) {
  const answer = await ask(nc, subject, body, { "Fh-Wait": "30s" });
  if (answer.headers?.has("Nats-Service-Error-Code")) {
    throw new Error(`the answer is an error: ${JSON.stringify(answer.body)}`);
  }
  return answer.body;
}

/** Fails when a promise is not settled in time. */
export async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${patience} ms`)), patience);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
