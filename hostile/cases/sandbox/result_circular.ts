// expect: ERUNTIME
const round: { self?: unknown } = {};
round.self = round;
export default () => round;
