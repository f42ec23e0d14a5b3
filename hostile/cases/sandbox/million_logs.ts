// expect: OK | ERR_ISOLATE_TIMEOUT
// cpu: roomy
for (let at = 0; at < 1_000_000; at += 1) console.log('line', at);
