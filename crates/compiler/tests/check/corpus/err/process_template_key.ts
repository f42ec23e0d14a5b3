const tail = 'cess';

/** Put together in a template. */
export default () => [globalThis[`process`], globalThis[`pro${tail}`]];
