/** @type {import('next').NextConfig} */
export default {
  // The kernel is a process of its own: the package that starts it is not bundled.
  serverExternalPackages: ['@tgp/core'],
};
