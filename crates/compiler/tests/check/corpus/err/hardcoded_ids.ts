/** Works for one customer. */
export default () => [
  '550e8400-e29b-41d4-a716-446655440000',
  'cus_NffrFeUfNV2Hib',
  '507f1f77bcf86cd799439011',
  '418273645091',
];
