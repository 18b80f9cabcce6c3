// Tells all that the guest can see of itself, and then leaves as different a world
// as it can. See ../README.md.

import { exit, fail, giveText, log, take } from "./host";

const PAGE: usize = 65536;
const MAX_SUMS: i32 = 64; // pages whose sums are told apart

// State of each kind. Variables of a module are wasm globals.
let global32: i32 = 41;
let global64: i64 = -41;
let globalF32: f32 = 1.5;
let globalF64: f64 = -2.5;
let list: Node | null = null;
let words = new Map<string, i32>();
let call: (n: i32) => i32 = same;
const table: StaticArray<u64> = [1, 2, 3, 4, 5, 6, 7, 8]; // in a data segment
const pattern = memory.data(16 * 4096); // zero pages
const sums = memory.data(MAX_SUMS * 8);

class Node {
  constructor(public next: Node | null, public value: i32) {}
}

function same(n: i32): i32 { return n; }
function other(n: i32): i32 { return n + 1; }

// Each step is a bijection of the sum: no single change goes unseen.
function hash(sum: u64, from: usize, to: usize): u64 {
  for (let p = from; p < to; p += 8) {
    sum = (sum ^ load<u64>(p)) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 29;
  }
  return sum;
}

// The sums run on from page to page: the first that differs is where.
function look(): i32 {
  const pages = memory.size();
  let sum = hash(1, sums, sums + MAX_SUMS * 8);
  for (let i = 0; i < pages; i++) {
    sum = hash(sum, <usize>i * PAGE, <usize>(i + 1) * PAGE);
    store<u64>(sums + (<usize>min(i, MAX_SUMS - 1) << 3), sum);
  }
  return pages;
}

function tell(pages: i32): string {
  let text = '{"memory":[';
  for (let i = 0; i < min(pages, MAX_SUMS); i++) {
    text += (i > 0 ? ',"' : '"') + load<u64>(sums + (<usize>i << 3)).toString(16) + '"';
  }
  let heap = 0;
  let n = list;
  while (n !== null) {
    heap = 31 * heap + n.value;
    n = n.next;
  }
  let data: u64 = 0;
  for (let i = 0; i < table.length; i++) {
    data = 31 * data + table[i];
  }
  return text + '],"pages":' + pages.toString() +
    ',"data":' + data.toString() +
    ',"i32":' + global32.toString() + ',"i64":' + global64.toString() +
    ',"f32":' + reinterpret<i32>(globalF32).toString() + ',"f64":' + reinterpret<i64>(globalF64).toString() +
    ',"words":' + words.size.toString() + ',"call":' + call(1).toString() +
    ',"heap":' + heap.toString() + '}';
}

function change(amount: i32): void {
  global32 += amount;
  global64 <<= 7;
  globalF32 += <f32>amount;
  globalF64 -= <f64>amount / 3;
  call = other;
  for (let i = 0; i <= amount % 64; i++) {
    list = new Node(list, amount + i);
    words.set((amount + i).toString(), i);
  }
  for (let i: usize = amount % 512; i < 16 * 4096; i += 512) {
    store<u8>(pattern + i, load<u8>(pattern + i) + <u8>(amount | 1));
  }
  for (let i = 0; i < table.length; i++) {
    table[i] += amount;
  }
}

/** Writes to all of its new memory and gives 3 if that was not zero before. */
function grow(amount: i32): i32 {
  const before = memory.grow(1 + amount % 16);
  if (before < 0) return 4;
  let found: u64 = 0;
  for (let at = <usize>before * PAGE; at < <usize>memory.size() * PAGE; at += 8) {
    found |= load<u64>(at);
    store<u64>(at, amount | 1);
  }
  return found != 0 ? 3 : 0;
}

function deep(n: i32): i32 {
  return n == 0 ? 0 : deep(n - 1) + 1;
}

/**
 * The input is a word and a number: how to end, and by how much to change
 * everything before. It logs what it saw when it began, and gives it as output.
 */
export function mutate(): i32 {
  const pages = look();
  const seen = tell(pages);
  log("world", seen);
  giveText(seen);

  const input = String.UTF8.decode(take().buffer).slice(1, -1);
  const space = input.indexOf(" ");
  const end = input.slice(0, space);
  const amount = I32.parseInt(input.slice(space + 1));
  change(amount);
  if (end == "return") {
    return 0;
  } else if (end == "trap") {
    unreachable();
  } else if (end == "exit") {
    exit(amount % 3);
  } else if (end == "loop") {
    for (;;) global32++;
  } else if (end == "grow") {
    return grow(amount);
  } else if (end == "fail") {
    fail('{"code":"asked","message":"to fail"}');
    return 1;
  } else if (end == "deep") {
    global32 = deep(5000);
    return 0;
  } else if (end == "wreck") {
    memory.fill(0, <u8>(amount | 1), <usize>memory.size() * PAGE);
    if (amount & 1) unreachable();
    return 0;
  }
  return 2;
}
