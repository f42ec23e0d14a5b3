// expect: ERUNTIME
export default () => ({ then() { /* says nothing */ } });
