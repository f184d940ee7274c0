/// What an operator or an app may change about an app. Nil leaves a member as it is.
package struct AppChanges: Sendable {
    package var webhook: WebhookSettings?
    package var backgroundRefreshStatus: BackgroundRefreshStatus?
    package var limits: AppLimits?
    package var isForceQuit: Bool?

    package init() {}
}
