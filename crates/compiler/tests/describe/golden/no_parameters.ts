/** The answer. */
export default () => ({ answer: 42, unit: null, tags: ['a', 'b'], nested: { ok: !0 }, late: Date.now() });
