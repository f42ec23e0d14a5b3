// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
const kept = args.leaf ? new Uint8Array(30_000_000).fill(1) : null;
export default async () => {
  if (args.leaf) await new Promise((resolve) => setTimeout(resolve, 300, kept));
  else await Promise.all(Array.from({ length: 900 }, () => tgp.exec_tool('tools/hostile/exec_width_holds_memory.ts', { leaf: true })));
};
