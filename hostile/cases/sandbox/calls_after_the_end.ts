// expect: ERUNTIME | ERR_ISOLATE_TIMEOUT
const again = (): Promise<unknown> => tgp.list_files('tools').then(again);
void again();
return 1;
