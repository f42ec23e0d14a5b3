// expect: ERUNTIME
export default () => () => 1;
