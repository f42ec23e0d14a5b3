// expect: OK
// result: {"real":true}
JSON.stringify = () => '{"forged":true}';
JSON.parse = () => ({ forged: true });
export default () => ({ real: true });
