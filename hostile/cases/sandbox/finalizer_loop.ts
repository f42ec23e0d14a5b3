// expect: ERR_ISOLATE_TIMEOUT | OK
const registry = new FinalizationRegistry(() => { for (;;) {} });
export default async () => {
  for (let at = 0; at < 100; at += 1) registry.register({}, at);
  await new Promise((resolve) => setTimeout(resolve, 20));
  return 'left';
};
