// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
for (let at = 0; ; at += 1) Symbol.for(`symbol ${at}`);
