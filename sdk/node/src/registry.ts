/** The kernels of this process that are not shut down. */

import { TGPError } from './errors.js';
import { kindOf } from './json.js';
import type { TGP } from './kernel.js';

/** Two copies of this package in one process share the list. */
const KEY = Symbol.for('@tgp/core/kernels');

type Holder = { [KEY]?: Set<TGP> };

function kernels(): Set<TGP> {
  const holder = globalThis as Holder;
  return (holder[KEY] ??= new Set());
}

export function addKernel(kernel: TGP): void {
  kernels().add(kernel);
}

export function removeKernel(kernel: TGP): void {
  kernels().delete(kernel);
}

/** A copy of this package has a class of its own, so a kernel is known by its methods. */
export function checkKernel(caller: string, kernel: unknown): void {
  const methods = (kernel ?? {}) as Partial<TGP>;
  if (typeof methods.call !== 'function' || typeof methods.useSql !== 'function') {
    const help = 'create it with `new TGP({ … })`';
    throw new TGPError('ECONFIG', `the kernel of ${caller} is ${kindOf(kernel)}, expected a TGP`, { help, field: 'kernel' });
  }
}

/** The only kernel of the process. */
export function onlyKernel(caller: string): TGP {
  const [first, ...others] = kernels();
  if (first === undefined) {
    throw new TGPError('ECONFIG', `${caller} found no kernel`, { help: 'create one first: `new TGP({ … })`' });
  }
  if (others.length > 0) {
    throw new TGPError('ECONFIG', `${caller} found ${others.length + 1} kernels and cannot choose one`, {
      help: `name the kernel: \`${caller.replace('()', '')}(executor, kernel)\``,
    });
  }
  return first;
}
