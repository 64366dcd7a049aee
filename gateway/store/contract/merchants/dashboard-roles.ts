/** The roles of users on the dashboard (interfaces.md §2, Users of the dashboard). */

/** `owner`: everything; `staff`: everything but keys, users and bills; `viewer`: only reads. */
export const DASHBOARD_ROLES = ['owner', 'staff', 'viewer'] as const;

export type DashboardRole = (typeof DASHBOARD_ROLES)[number];

/** The words for a change of the role: a role, or none. */
export const DASHBOARD_CHOICES = [...DASHBOARD_ROLES, 'none'] as const;

export type DashboardChoice = (typeof DASHBOARD_CHOICES)[number];

/** The role with this name; null if there is none. */
export function dashboardRole(name: string | null | undefined): DashboardRole | null {
  return DASHBOARD_ROLES.find((role) => role === name) ?? null;
}
