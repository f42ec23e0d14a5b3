// expect: ERUNTIME
await new Promise(() => {});
return 1;
