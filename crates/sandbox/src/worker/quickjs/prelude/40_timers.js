// Timers, microtasks, and references that hold until the current job is over.
const timers = table();
let lastTimer = 0;

/** Numbers from here on are timers of the platform itself, which a tool knows nothing of; `timers.rs` has it as well. */
const FIRST_QUIET = 2 ** 40;

function startTimer(callback, delay, values, repeat, first = 0) {
  if (typeof callback !== 'function') throw new TypeError('The "callback" argument must be of type function.');
  lastTimer += 1;
  const id = first + lastTimer;
  const wait = Math.max(0, Number(delay) || 0);
  timers[id] = { __proto__: null, callback, values, wait, repeat };
  host.armTimer(id, wait);
  return id;
}

/** A timer of the platform itself. */
function setQuietTimeout(callback, delay) {
  return startTimer(callback, delay, [], false, FIRST_QUIET);
}

/** The kernel's loop calls this when a timer is due. */
function fireTimer(id) {
  releaseKept();
  const timer = timers[id];
  if (timer === undefined) return;
  if (timer.repeat) host.armTimer(id, Math.max(1, timer.wait));
  else delete timers[id];
  apply(timer.callback, undefined, timer.values);
}

function setTimeout(callback, delay, ...values) {
  return startTimer(callback, delay, values, false);
}
install('setTimeout', setTimeout);
install('setInterval', function setInterval(callback, delay, ...values) {
  return startTimer(callback, delay, values, true);
});
install('setImmediate', function setImmediate(callback, ...values) {
  return startTimer(callback, 0, values, false);
});
const stopTimer = (id) => {
  if (typeof id !== 'number' || timers[id] === undefined) return;
  delete timers[id];
  host.disarmTimer(id);
};
install('clearTimeout', function clearTimeout(id) {
  stopTimer(id);
});
install('clearInterval', function clearInterval(id) {
  stopTimer(id);
});
install('clearImmediate', function clearImmediate(id) {
  stopTimer(id);
});
const resolved = Promise.resolve();
const promiseThen = Promise.prototype.then;
install('queueMicrotask', function queueMicrotask(callback) {
  if (typeof callback !== 'function') throw new TypeError('The "callback" argument must be of type function.');
  apply(promiseThen, resolved, [() => apply(callback, undefined, [])]);
});

// The engine counts references, so a target without another reference would be gone at once. The standard keeps it
// until the end of the job; here it is kept until the next job that a timer or an answer starts.
let kept = [];
function releaseKept() {
  if (kept.length > 0) kept = [];
}
function keepForThisJob(target) {
  if ((typeof target === 'object' && target !== null) || typeof target === 'function') {
    defineProperty(kept, kept.length, { __proto__: null, value: target, configurable: true });
  }
  return target;
}
const EngineWeakRef = globalThis.WeakRef;
const derefOfEngine = EngineWeakRef.prototype.deref;
const KeepingWeakRef = function WeakRef(target) {
  if (new.target === undefined) throw new TypeError("Constructor WeakRef requires 'new'");
  return construct(EngineWeakRef, [keepForThisJob(target)], new.target);
};
defineProperty(KeepingWeakRef, 'prototype', { __proto__: null, value: EngineWeakRef.prototype, writable: false });
defineProperty(EngineWeakRef.prototype, 'constructor', { __proto__: null, value: KeepingWeakRef, writable: true, configurable: true });
defineProperty(EngineWeakRef.prototype, 'deref', {
  __proto__: null,
  value: function deref() {
    return keepForThisJob(apply(derefOfEngine, this, []));
  },
  writable: true,
  configurable: true,
});
install('WeakRef', KeepingWeakRef);
