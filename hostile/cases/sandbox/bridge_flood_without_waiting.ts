// expect: ERUNTIME
// cpu: roomy
for (let at = 0; at < 100_000; at += 1) void tgp.read_file('missing').catch(() => 0);
await new Promise(() => {});
