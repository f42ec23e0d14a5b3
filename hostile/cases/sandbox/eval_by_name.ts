// expect: ERUNTIME
export default () => (globalThis as never as Record<string, (text: string) => unknown>)['ev' + 'al']('1 + 1');
