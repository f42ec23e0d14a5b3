/** Helpers for text. */
exports.shout = (text: string) => text.toUpperCase();
exports.whisper = function (text: string) {
  return text.toLowerCase();
};
