// expect: ERUNTIME
export default async () => {
  for (;;) await tgp.list_files('tools').catch(() => []);
};
