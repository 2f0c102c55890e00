"""The service's words on the wire: authentication, validation, OData, dates and durations."""
