// expect: ERR_ISOLATE_TIMEOUT | ERR_ISOLATE_MEMORY
const list = Array.from({ length: 400_000 }, (_, at) => at);
export default () => {
  while (list.length > 0) list.splice(0, 1, 1);
  return list.length;
};
