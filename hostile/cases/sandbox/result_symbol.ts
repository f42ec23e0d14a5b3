// expect: ERUNTIME
export default () => Symbol('x');
