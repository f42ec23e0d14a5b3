// expect: ERUNTIME
(tgp as never as Record<string, unknown>)['read_file'] = () => 'mine';
export default () => 1;
