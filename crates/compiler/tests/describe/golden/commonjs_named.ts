/** Helpers for text. */
exports.shout = (text: string) => text.toUpperCase();
module.exports.whisper = function (text: string) {
  return text.toLowerCase();
};
