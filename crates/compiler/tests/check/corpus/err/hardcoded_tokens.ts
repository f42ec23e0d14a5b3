/** Carries its keys along. */
export default () => [
  'sk-proj-abcdefghijkl1234567890',
  'ghp_16C7e42F292c6912E7710c838347Ae178B4a',
  'AKIAIOSFODNN7EXAMPLE',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N',
  `Bearer 0a1b2c3d4e5f6a7b`,
  '-----BEGIN RSA PRIVATE KEY-----',
];
