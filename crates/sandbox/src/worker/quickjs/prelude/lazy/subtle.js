return { __proto__: null, subtle: null };
