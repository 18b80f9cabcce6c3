// The AssemblyScript guest of tests and benchmarks that compare languages.

import { give, giveText, take } from "./host";

export { mutate } from "./world";

let seed: u32 = 0;

export function nothing(): i32 {
  return 0;
}

/** Gives back what it got. */
export function echo(): i32 {
  return give(take());
}

/** Never ends. */
export function spin(): i32 {
  while (seed != 1) {}
  return 0;
}

function pseudorandom(): u32 { // xorshift32 of Marsaglia
  seed ^= seed << 13;
  seed ^= seed >> 17;
  seed ^= seed << 5;
  return seed;
}

/**
 * Sorts as many pseudo-random whole numbers as the input says, and as many
 * fractions. The output is a sum over their order.
 */
export function sort(): i32 {
  const n = I32.parseInt(String.UTF8.decode(take().buffer));
  seed = 2463534242;
  const whole = new StaticArray<i32>(n);
  const fractions = new StaticArray<f64>(n);
  for (let i = 0; i < n; i++) {
    whole[i] = pseudorandom();
    fractions[i] = <f64>pseudorandom() / 65536;
  }
  whole.sort();
  fractions.sort();
  let sum: u32 = 0;
  for (let i = 0; i < n; i++) {
    sum = (sum * 31) ^ whole[i] ^ <u32>fractions[i];
  }
  return giveText('{"sum":' + sum.toString() + "}");
}
