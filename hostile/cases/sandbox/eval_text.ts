// expect: ERUNTIME
const run = (globalThis as never as Record<string, (text: string) => unknown>)['ev' + 'al'];
export default () => run('1 + 1');
