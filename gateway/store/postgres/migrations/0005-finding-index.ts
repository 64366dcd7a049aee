/** An index for the list of a merchant's findings. Shipped: must not change. */
export const FINDING_INDEX = `
CREATE INDEX finding_by_merchant ON finding (merchant_id, id);
`;
