/** By reflection. */
export default () => [
  Reflect.get(globalThis, 'process'),
  Object.getOwnPropertyDescriptor(globalThis, 'process')?.value,
  Reflect['get'](globalThis, 'pro' + 'cess'),
];
