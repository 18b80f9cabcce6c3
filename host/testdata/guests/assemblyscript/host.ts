// The imports of flowhost:task/v1, and strings to and from them.

@external("flowhost:task/v1", "size") declare function fh_size(field: i32): i32;
@external("flowhost:task/v1", "read") declare function fh_read(field: i32, ptr: usize, cap: i32): i32;
@external("flowhost:task/v1", "output") declare function fh_output(ptr: usize, len: i32): i32;
@external("flowhost:task/v1", "fail") declare function fh_fail(ptr: usize, len: i32): i32;
@external("flowhost:task/v1", "log")
declare function fh_log(level: i32, msg: usize, len: i32, fields: usize, fieldsLen: i32): i32;

/** 0 as long as the call may go on, else the milliseconds until it is ended. */
@external("flowhost:task/v1", "should_stop") export declare function shouldStop(): i32;

/** Ends the call with a status. */
@external("wasi_snapshot_preview1", "proc_exit")
export declare function exit(status: i32): void;

/** The call's input. */
export function take(): Uint8Array {
  const bytes = new Uint8Array(fh_size(0));
  fh_read(0, bytes.dataStart, bytes.length);
  return bytes;
}

/** Sets the call's output. */
export function give(bytes: Uint8Array): i32 {
  return fh_output(bytes.dataStart, bytes.length);
}

export function giveText(text: string): i32 {
  return give(Uint8Array.wrap(String.UTF8.encode(text)));
}

export function fail(json: string): void {
  const text = String.UTF8.encode(json);
  fh_fail(changetype<usize>(text), text.byteLength);
}

export function log(message: string, fields: string): void {
  const m = String.UTF8.encode(message), f = String.UTF8.encode(fields);
  fh_log(1, changetype<usize>(m), m.byteLength, changetype<usize>(f), f.byteLength);
}
