namespace N { export let counter = 0; }
export default N;
