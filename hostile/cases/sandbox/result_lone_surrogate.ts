// expect: OK
// result: ["\ufffd","\ufffd\\ud800","\ud83d\ude00"]
export default () => ['\ud800', '\udfff\\ud800', '\ud83d\ude00'];
