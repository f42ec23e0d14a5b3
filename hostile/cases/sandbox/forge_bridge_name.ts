// expect: ENOTFOUND | ERUNTIME
export default async () => {
  const bridge = (tgp.read_file as never as { bridge?: (name: string) => Promise<unknown> }).bridge ?? (tgp as never as Record<string, (name: string) => Promise<unknown>>)['bridge'];
  return bridge('exec_shell');
};
