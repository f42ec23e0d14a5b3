// expect: OK
// result: "mine"
(globalThis as never as Record<string, unknown>)['tgp'] = { read_file: () => 'mine' };
export default () => (tgp as never as { read_file(): string }).read_file();
