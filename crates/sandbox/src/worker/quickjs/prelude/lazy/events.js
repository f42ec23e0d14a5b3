// Event, EventTarget, AbortSignal, AbortController.
const { defineProperty, now, setQuietTimeout } = kit;

class Event {
  #type;
  #bubbles;
  #cancelable;
  #composed;
  #prevented = false;
  #stopped = false;
  #target = null;
  #timeStamp = now();
  constructor(type, init = undefined) {
    if (arguments.length === 0) throw new TypeError('The "type" argument must be specified');
    this.#type = `${type}`;
    this.#bubbles = Boolean(init?.bubbles);
    this.#cancelable = Boolean(init?.cancelable);
    this.#composed = Boolean(init?.composed);
  }
  static direct(event, target) {
    event.#target = target;
    event.#stopped = false;
  }
  static isStopped(event) {
    return event.#stopped;
  }
  get type() {
    return this.#type;
  }
  get bubbles() {
    return this.#bubbles;
  }
  get cancelable() {
    return this.#cancelable;
  }
  get composed() {
    return this.#composed;
  }
  get defaultPrevented() {
    return this.#prevented;
  }
  get target() {
    return this.#target;
  }
  get currentTarget() {
    return this.#target;
  }
  get timeStamp() {
    return this.#timeStamp;
  }
  composedPath() {
    return this.#target === null ? [] : [this.#target];
  }
  preventDefault() {
    if (this.#cancelable) this.#prevented = true;
  }
  stopPropagation() {}
  stopImmediatePropagation() {
    this.#stopped = true;
  }
}
const { direct, isStopped } = Event;
delete Event.direct;
delete Event.isStopped;

class CustomEvent extends Event {
  #detail;
  constructor(type, init = undefined) {
    super(type, init);
    this.#detail = init?.detail ?? null;
  }
  get detail() {
    return this.#detail;
  }
}

class EventTarget {
  #listeners = [];
  addEventListener(type, listener, options = undefined) {
    if (listener === null || listener === undefined) return;
    const signal = typeof options === 'object' && options !== null ? options.signal : undefined;
    if (signal?.aborted) return;
    const known = this.#listeners.some((entry) => entry.type === `${type}` && entry.listener === listener);
    if (known) return;
    const once = typeof options === 'object' && options !== null && Boolean(options.once);
    this.#listeners = [...this.#listeners, { type: `${type}`, listener, once }];
    signal?.addEventListener('abort', () => this.removeEventListener(type, listener), { once: true });
  }
  removeEventListener(type, listener) {
    this.#listeners = this.#listeners.filter((entry) => entry.type !== `${type}` || entry.listener !== listener);
  }
  dispatchEvent(event) {
    if (!(event instanceof Event)) throw new TypeError('The "event" argument must be an instance of Event.');
    direct(event, this);
    for (const entry of this.#listeners) {
      if (entry.type !== event.type || !this.#listeners.includes(entry)) continue;
      if (entry.once) this.removeEventListener(entry.type, entry.listener);
      if (typeof entry.listener === 'function') entry.listener.call(this, event);
      else entry.listener.handleEvent(event);
      if (isStopped(event)) break;
    }
    return !event.defaultPrevented;
  }
}

let mayConstruct = false;
function newSignal() {
  mayConstruct = true;
  try {
    return new AbortSignal();
  } finally {
    mayConstruct = false;
  }
}

class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  #handler = null;
  constructor() {
    if (!mayConstruct) throw new TypeError('Illegal constructor');
    super();
  }
  get aborted() {
    return this.#aborted;
  }
  get reason() {
    return this.#reason;
  }
  get onabort() {
    return this.#handler;
  }
  set onabort(handler) {
    if (this.#handler !== null) this.removeEventListener('abort', this.#handler);
    this.#handler = typeof handler === 'function' ? handler : null;
    if (this.#handler !== null) this.addEventListener('abort', this.#handler);
  }
  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }
  static fire(signal, reason) {
    if (signal.#aborted) return;
    signal.#aborted = true;
    signal.#reason = reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : reason;
    signal.dispatchEvent(new Event('abort'));
  }
  static abort(reason) {
    const signal = newSignal();
    fireAbort(signal, reason);
    return signal;
  }
  static timeout(milliseconds) {
    if (typeof milliseconds !== 'number' || !(milliseconds >= 0)) {
      throw new TypeError('The "delay" argument must be a number that is not negative.');
    }
    const signal = newSignal();
    setQuietTimeout(() => {
      fireAbort(signal, new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    }, milliseconds);
    return signal;
  }
  static any(signals) {
    const any = newSignal();
    for (const signal of [...signals]) {
      if (!(signal instanceof AbortSignal)) throw new TypeError('AbortSignal.any takes AbortSignals.');
      if (signal.aborted) {
        fireAbort(any, signal.reason);
        break;
      }
      signal.addEventListener('abort', () => fireAbort(any, signal.reason), { once: true });
    }
    return any;
  }
}
const fireAbort = AbortSignal.fire;
delete AbortSignal.fire;

class AbortController {
  #signal = newSignal();
  get signal() {
    return this.#signal;
  }
  abort(reason = undefined) {
    fireAbort(this.#signal, reason);
  }
}
for (const made of [Event, CustomEvent, EventTarget, AbortSignal, AbortController]) {
  defineProperty(made.prototype, Symbol.toStringTag, { __proto__: null, value: made.name, configurable: true });
}
return { __proto__: null, Event, CustomEvent, EventTarget, AbortSignal, AbortController };
