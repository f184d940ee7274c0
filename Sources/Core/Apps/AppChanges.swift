/// The changes of an app by the operator or the app. `nil` leaves a member unchanged.
package struct AppChanges: Sendable {
    package var webhook: WebhookSettings?
    package var backgroundRefreshStatus: BackgroundRefreshStatus?
    package var limits: AppLimits?
    package var isForceQuit: Bool?

    package init() {}
}
