// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY | EINTERNAL
const text = 'x'.repeat(1_000_000);
export default async () => {
  for (let at = 0; ; at += 1) await tgp.write_file(`/tmp/${at}`, text);
};
