// expect: ERR_ISOLATE_MEMORY
// cpu: roomy
let blob = new Blob(['hostile']);
for (;;) blob = new Blob([blob, blob]);
