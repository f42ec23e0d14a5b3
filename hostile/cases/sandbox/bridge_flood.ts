// expect: ERUNTIME
// cpu: roomy
export default async () => {
  for (;;) await tgp.list_files('tools').catch(() => []);
};
