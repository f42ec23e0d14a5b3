const { Intl: I } = globalThis;

/** Formats money. */
export default () => [I, globalThis.Intl];
