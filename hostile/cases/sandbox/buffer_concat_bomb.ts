// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
let all = Buffer.from('hostile');
for (;;) all = Buffer.concat([all, all]);
