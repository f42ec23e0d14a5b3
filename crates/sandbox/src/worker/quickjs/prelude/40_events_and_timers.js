// EventTarget, AbortController, timers.
class Event {
  constructor(type) {
    this.type = String(type);
    this.target = null;
  }
}
class EventTarget {
  #listeners = [];
  addEventListener(type, listener, options) {
    if (listener === null || listener === undefined) return;
    this.#listeners.push({ type: String(type), listener, once: Boolean(options?.once) });
  }
  removeEventListener(type, listener) {
    this.#listeners = this.#listeners.filter((entry) => entry.type !== String(type) || entry.listener !== listener);
  }
  dispatchEvent(event) {
    event.target = this;
    for (const entry of [...this.#listeners]) {
      if (entry.type !== event.type) continue;
      if (entry.once) this.removeEventListener(entry.type, entry.listener);
      if (typeof entry.listener === 'function') entry.listener.call(this, event);
      else entry.listener.handleEvent(event);
    }
    return true;
  }
}
install('Event', Event);
install('EventTarget', EventTarget);

class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  onabort = null;
  get aborted() {
    return this.#aborted;
  }
  get reason() {
    return this.#reason;
  }
  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }
  static fire(signal, reason) {
    if (signal.#aborted) return;
    signal.#aborted = true;
    signal.#reason = reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : reason;
    const event = new Event('abort');
    if (typeof signal.onabort === 'function') signal.onabort(event);
    signal.dispatchEvent(event);
  }
  static abort(reason) {
    const signal = new AbortSignal();
    fireAbort(signal, reason);
    return signal;
  }
  static timeout(milliseconds) {
    const signal = new AbortSignal();
    setTimeout(() => fireAbort(signal, new DOMException('The operation timed out', 'TimeoutError')), milliseconds);
    return signal;
  }
  static any(signals) {
    const any = new AbortSignal();
    for (const signal of signals) {
      if (signal.aborted) fireAbort(any, signal.reason);
      else signal.addEventListener('abort', () => fireAbort(any, signal.reason), { once: true });
    }
    return any;
  }
}
const fireAbort = AbortSignal.fire;
delete AbortSignal.fire;
install('AbortSignal', AbortSignal);

class AbortController {
  #signal = new AbortSignal();
  get signal() {
    return this.#signal;
  }
  abort(reason) {
    fireAbort(this.#signal, reason);
  }
}
install('AbortController', AbortController);

const timers = table();
let lastTimer = 0;

function startTimer(callback, delay, values, repeat) {
  if (typeof callback !== 'function') throw new TypeError('a timer takes a function');
  lastTimer += 1;
  const wait = Math.max(0, Number(delay) || 0);
  timers[lastTimer] = { __proto__: null, callback, values, wait, repeat };
  host.armTimer(lastTimer, wait);
  return lastTimer;
}

/** The kernel's loop calls this when a timer is due. */
function fireTimer(id) {
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
install('setInterval', (callback, delay, ...values) => startTimer(callback, delay, values, true));
const stopTimer = (id) => {
  if (typeof id !== 'number' || timers[id] === undefined) return;
  delete timers[id];
  host.disarmTimer(id);
};
install('clearTimeout', stopTimer);
install('clearInterval', stopTimer);
install('queueMicrotask', (callback) => {
  Promise.resolve().then(callback);
});
